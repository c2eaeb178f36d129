"""What was found: typed records that say how they were made, and the folder they are kept in."""
