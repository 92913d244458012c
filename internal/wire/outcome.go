package wire

// IsErrorResponse tells whether a response, one valid JSON-RPC message, has an
// error rather than a result. It reads no further than to the first of the two.
func IsErrorResponse(raw []byte) bool {
	i := skipSpace(raw, 0)
	if at(raw, i) != '{' {
		return false
	}
	for sep := byte('{'); at(raw, i) == sep; sep = ',' {
		key := skipSpace(raw, i+1)
		nameEnd := scanString(raw, key)
		if nameEnd < 0 {
			return false
		}
		value := scanColon(raw, nameEnd)
		if value < 0 || nameIs(raw[key:nameEnd], "result") {
			return false
		}
		if nameIs(raw[key:nameEnd], "error") {
			return true
		}
		end := scanValue(raw, value, 0)
		if end < 0 {
			return false
		}
		i = skipSpace(raw, end)
	}
	return false
}
