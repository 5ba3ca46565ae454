"""What single layers of other libraries are in ours."""
