"""What is learned: classes, tags, choices from lists."""
