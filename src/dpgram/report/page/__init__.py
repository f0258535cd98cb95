"""One page of HTML for two readers: the privacy label for an officer, and models to explore for an analyst."""
