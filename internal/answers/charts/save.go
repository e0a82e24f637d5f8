package charts

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"hekla.sh/hekla/pkg/apis/bounds"
)

// MaxSaved is how many bytes [Store.Save] returns at most: a ConfigMap holds 1 MiB, and base64 takes a third more.
const MaxSaved = 700 << 10

// maxRead bounds what [Store.Restore] unpacks, in bytes: a number has some ten at most.
const maxRead = 32 << 20

// saved is what is handed over, as compressed JSON.
type saved struct {
	Spans   []savedSpan `json:"spans"`
	Lines   []savedLine `json:"lines"`
	Changes []time.Time `json:"changes,omitempty"`
}

type savedSpan struct {
	StepSeconds int     `json:"stepSeconds"`
	Steps       []int64 `json:"steps"`
	Samples     []int32 `json:"samples"`
}

type savedLine struct {
	Subject  string    `json:"subject,omitempty"`
	Measure  Measure   `json:"measure"`
	Resource string    `json:"resource,omitempty"`
	Points   []rounded `json:"points"`
}

// rounded is written with four digits: more are not seen, and take most of the space.
type rounded float32

func (r rounded) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(r), 'g', 4, 32), nil
}

// Save returns what is handed over to the next leader, and how many lines are left out because there is no space.
func (s *Store) Save() (packed []byte, left int, err error) {
	s.mutex.Lock()
	all := saved{Changes: slices.Clone(s.changes)}
	for i, r := range s.rings {
		all.Spans = append(all.Spans, savedSpan{int(Spans[i].Step / time.Second), slices.Clone(r.steps), slices.Clone(r.samples)})
	}
	sizes := map[string]int{} // by subject
	for key, l := range s.lines {
		sizes[key.Subject] += l.size()
	}
	sizes[""] = MaxLines * pointsPerLine // the cluster itself comes first
	for _, key := range slices.SortedFunc(maps.Keys(s.lines), func(a, b Key) int {
		return cmp.Or(cmp.Compare(sizes[b.Subject], sizes[a.Subject]), compareKeys(a, b))
	}) {
		points := make([]rounded, pointsPerLine)
		for i, value := range s.lines[key] {
			points[i] = rounded(value)
		}
		all.Lines = append(all.Lines, savedLine{key.Subject, key.Measure, key.Resource, points})
	}
	s.mutex.Unlock()
	for whole := len(all.Lines); ; {
		if packed, err = pack(&all); err != nil || len(packed) <= MaxSaved {
			return packed, whole - len(all.Lines), err
		}
		all.Lines = all.Lines[:len(all.Lines)*3/4]
	}
}

func pack(all *saved) ([]byte, error) {
	var buffer bytes.Buffer
	to := gzip.NewWriter(&buffer)
	if err := json.NewEncoder(to).Encode(all); err != nil {
		return nil, err
	}
	if err := to.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// Restore takes over what another process has saved, and notes that this one leads since now. It must be called before
// the first [Store.Add]. What cannot be read is an error, and the store stays as it is.
func (s *Store) Restore(packed []byte, now time.Time) error {
	from, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return fmt.Errorf("charts of the leader before: %w", err)
	}
	var all saved
	document, err := io.ReadAll(io.LimitReader(from, maxRead))
	if err == nil {
		err = bounds.UnmarshalJSON(document, &all)
	}
	if err != nil {
		return fmt.Errorf("charts of the leader before: %w", err)
	}
	if !all.fits() {
		return fmt.Errorf("charts of the leader before: they have other steps, as another version of Hekla writes")
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for i, span := range all.Spans {
		s.rings[i] = ring{span.Steps, span.Samples}
	}
	for _, of := range all.Lines[:min(len(all.Lines), MaxLines)] {
		l := &line{}
		for i, value := range of.Points {
			l[i] = float32(value)
		}
		s.lines[Key{of.Subject, of.Measure, of.Resource}] = l
	}
	s.changes = append(all.Changes, now)
	s.changes = s.changes[max(len(s.changes)-maxChanges, 0):]
	return nil
}

// fits reports whether what was saved has the spans of this version.
func (a *saved) fits() bool {
	if len(a.Spans) != len(Spans) {
		return false
	}
	for i, span := range a.Spans {
		if span.StepSeconds != int(Spans[i].Step/time.Second) || len(span.Steps) != Spans[i].Points || len(span.Samples) != Spans[i].Points {
			return false
		}
	}
	return !slices.ContainsFunc(a.Lines, func(l savedLine) bool { return len(l.Points) != pointsPerLine })
}
