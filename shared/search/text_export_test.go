package search

// What the tests look at from outside.
var (
	AppendDSL = appendDSL
	Unquote   = unquote
)
