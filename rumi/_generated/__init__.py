# Generated from formats/*.ksy by formats/generate.mjs. Do not edit.
"""Parsers and constants generated from the format specifications."""
