package auth

import (
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// at is an error with the line of n.
func at(n ast.Node, format string, args ...any) error {
	return fmt.Errorf("line %d: %s", line(n), fmt.Sprintf(format, args...))
}

func line(n ast.Node) int {
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 && !m.IsFlowStyle {
		n = m.Values[0].Key
	}
	if m, ok := n.(*ast.MappingValueNode); ok {
		n = m.Key
	}
	if n == nil {
		return 1
	}
	if tk := n.GetToken(); tk != nil && tk.Position != nil {
		return max(1, tk.Position.Line)
	}
	return 1
}

// yamlError keeps the library's message and drops its excerpt of the source,
// which may hold a hash, or a key that was pasted by mistake.
func yamlError(err error) error {
	var syntax *yaml.SyntaxError
	if !errors.As(err, &syntax) {
		return errors.New("this cannot be read as YAML")
	}
	n := 1
	if tk := syntax.Token; tk != nil && tk.Position != nil {
		n = max(1, tk.Position.Line)
	}
	return fmt.Errorf("line %d: YAML: %s", n, syntax.Message)
}

// tooDeep keeps brackets that nest without end from the library's recursion.
func tooDeep(text []byte) bool {
	depth := 0
	for _, c := range text {
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
		if depth > maxNesting {
			return true
		}
	}
	return false
}
