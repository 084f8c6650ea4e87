"""Figures and how they were measured."""
