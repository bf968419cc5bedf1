"""The API of Azure Personalizer, for applications that were written for it: their client needs another address only."""
