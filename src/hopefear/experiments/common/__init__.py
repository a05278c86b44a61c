"""What experiments share: runs on disk, tests of differences, words of verdicts, files written."""
