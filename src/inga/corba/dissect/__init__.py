"""What captured traffic holds of CORBA."""
