"""What the report says, section by section: tables for the page, plain data for its figures."""
