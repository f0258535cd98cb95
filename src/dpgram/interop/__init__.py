"""What a release costs, in the words of other libraries: dp-accounting's events and OpenDP's measurements."""
