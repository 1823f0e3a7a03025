"""What chains compute with: sums that do not drift, prefixes, linear recursions, scans, fixed points."""
