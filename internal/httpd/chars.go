package httpd

// Classes of bytes.
const (
	isToken   = 1 << iota // may be in a method or in a header's name (RFC 9110, section 5.6.2)
	isValue               // may be in a header's value
	isHost                // may be in Host, by net/http's measure
	isPlain               // stands for itself in a path, escaped or not
	isVisible             // printable ASCII
	isUpper
	isLower
)

var class = func() (t [256]uint8) {
	set := func(chars string, bits uint8) {
		for _, ch := range []byte(chars) {
			t[ch] |= bits
		}
	}
	for ch := range t {
		if ch >= ' ' && ch != 0x7F || ch == '\t' {
			t[ch] |= isValue
		}
		if ch > ' ' && ch < 0x7F {
			t[ch] |= isVisible
		}
	}
	const upper, digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"
	const lower = "abcdefghijklmnopqrstuvwxyz"
	set(upper, isUpper)
	set(lower, isLower)
	set(upper+lower+digits, isToken|isHost|isPlain)
	set("!#$%&'*+-.^_`|~", isToken)
	set("!$%&'()*+,-.:;=@[]_~", isHost)
	set("-._~/", isPlain)
	return t
}()

// all tells whether each byte of b is of the class.
func all[T string | []byte](b T, bit uint8) bool {
	for i := range len(b) {
		if class[b[i]]&bit == 0 {
			return false
		}
	}
	return true
}
