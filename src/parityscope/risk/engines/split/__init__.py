"""Half the bits against the other half: about 2^(n/2) steps."""
