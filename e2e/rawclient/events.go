package rawclient

import (
	"bufio"
	"io"
	"strings"
)

// Event is one server-sent event.
type Event struct {
	Name, ID, Data string
}

// eventReader reads an event stream: the part of the WHATWG rules that servers use, with
// lines that end in LF or CR LF.
type eventReader struct {
	in     *bufio.Reader
	lastID string
}

func newEventReader(in io.Reader) *eventReader {
	return &eventReader{in: bufio.NewReaderSize(in, 32<<10)}
}

// next returns the next event that has data or an id; an event that the end of the
// stream cuts off is lost, as the rules say.
func (r *eventReader) next() (Event, error) {
	var e Event
	var data []string
	id := false
	for {
		line, err := r.in.ReadString('\n')
		if err != nil {
			return Event{}, err
		}
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if line == "" {
			if data == nil && !id {
				e = Event{}
				continue
			}
			e.Data, e.ID = strings.Join(data, "\n"), r.lastID
			return e, nil
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "data":
			data = append(data, value)
		case "event":
			e.Name = value
		case "id":
			r.lastID, id = value, true
		}
	}
}
