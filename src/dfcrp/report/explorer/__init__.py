"""The explorer: an interactive map inside the report; ``page/`` is what runs in the browser."""
