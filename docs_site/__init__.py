"""What turns docs/ into a site, and its tutorials into notebooks."""
