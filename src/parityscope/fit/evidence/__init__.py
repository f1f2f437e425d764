"""How strong the evidence for an interaction is, and what is promised."""
