"""States that were found against labels, over all labelled sets: ours beside plain models (`__main__.py`)."""
