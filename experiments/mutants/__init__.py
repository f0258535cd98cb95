"""Small mistakes, planted one at a time: which of them does no test notice? See docs/audits.md."""
