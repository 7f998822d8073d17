"""What each part of the recommended recipe is worth: rows, records of cells, the rendered page."""
