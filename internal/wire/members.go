package wire

// Change says what becomes of one member of an object: it goes, or the edits within
// its value are made, or, with the zero Change, it stays.
type Change struct {
	Drop  bool
	Edits []Edit // ascending, within the value
}

// EditMembers asks judge for each member of the object at i, with its decoded name,
// and returns the edits that follow, ascending. With a run of members go a comma and
// the white space beside it; all other bytes stay. left tells whether any member
// does.
func EditMembers(raw []byte, i uint32, judge func(name []byte, value Span) Change) (edits []Edit, left bool) {
	var run Span    // members that go
	var kept uint32 // where the last one ends that stays
	for key, value := range Members(raw, i) {
		name, _ := Unquote(key.Of(raw))
		v := judge(name, value)
		if v.Drop {
			if !run.Present() {
				run.Start = key.Start
			}
			run.End = value.End
			continue
		}
		if run.Present() {
			edits = append(edits, Edit{Span: Span{Start: run.Start, End: key.Start}})
		}
		run, kept = Span{}, value.End
		edits = append(edits, v.Edits...)
	}
	if run.Present() {
		if kept > 0 {
			run.Start = kept
		}
		edits = append(edits, Edit{Span: run})
	}
	return edits, kept > 0
}
