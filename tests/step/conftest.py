"""Tests of storage through real IO managers."""
