"""Programs as source code: text that needs neither Python nor us to run."""
