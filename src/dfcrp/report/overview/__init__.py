"""The report on many images: an overview that leads to a page for each."""
