"""Where randomness comes from: the operating system's cryptographic source, or a seed that is not private."""
