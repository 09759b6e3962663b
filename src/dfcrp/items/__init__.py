"""What is clustered: one table of items, whatever describes them."""
