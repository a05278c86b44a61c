"""The task ``parse``: dependency trees."""
