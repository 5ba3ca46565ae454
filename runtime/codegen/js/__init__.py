"""Write a program as one JavaScript module, for browsers and Node.js."""
