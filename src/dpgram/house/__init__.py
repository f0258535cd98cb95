"""The audit of the whole house: releases through the real door, of tables that must look alike."""
