"""Turn small tables into one HTML file: verdicts, figures, a space-time diagram."""
