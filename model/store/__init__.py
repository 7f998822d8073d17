"""The store of published bundles: publish, activate, open."""
