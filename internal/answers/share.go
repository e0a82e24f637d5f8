package answers

import (
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
)

const (
	// userParts of ofParts of all questions, trials and watches one user may take, so that others are answered, too.
	userParts, ofParts = 3, 4
	// maxUsers bounds for how many users it is stored what they have taken.
	maxUsers = 1000
	// toWrite is how long a client may take to read an answer, toWriteSnapshot a snapshot, toWriteEvent one event.
	toWrite, toWriteSnapshot, toWriteEvent = 30 * time.Second, 5 * time.Minute, 10 * time.Second
)

// shares are what users may still ask. Any goroutine may use it.
type shares struct {
	mutex sync.Mutex
	users map[string]*share
}

// share is what one user may still ask.
type share struct {
	all, trials *rate.Limiter
	trying      chan struct{} // a place for a submission
	watches     int
}

// of returns the share of a user.
func (s *shares) of(who user.Info) *share {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.find(shareOf(who))
}

// shareOf tells apart who has a share: a user, or all ServiceAccounts of a namespace together, of which a tenant can
// make any number.
func shareOf(who user.Info) string {
	if namespace, _, err := serviceaccount.SplitUsername(who.GetName()); err == nil {
		return serviceaccount.MakeNamespaceGroupName(namespace)
	}
	return keyOf(who)
}

func (s *shares) find(key string) *share {
	found := s.users[key]
	if found != nil {
		return found
	}
	if len(s.users) >= maxUsers {
		for other, of := range s.users {
			if of.watches == 0 {
				delete(s.users, other) // it may ask a burst more
			}
		}
	}
	if s.users == nil {
		s.users = map[string]*share{}
	}
	found = &share{trying: make(chan struct{}, 1), all: rate.NewLimiter(Share*userParts/ofParts, Burst*userParts/ofParts),
		trials: rate.NewLimiter(rate.Limit(TrialShare)*userParts/ofParts, TrialBurst*userParts/ofParts)}
	s.users[key] = found
	return found
}

// enter counts a client that begins to follow overviews. It is false if there are too many, of all users or of its own.
func (s *shares) enter(who user.Info) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	all := 0
	for _, of := range s.users {
		all += of.watches
	}
	own := s.find(shareOf(who))
	if all >= MaxWatches || own.watches >= MaxWatches*userParts/ofParts {
		return false
	}
	own.watches++
	return true
}

func (s *shares) leave(who user.Info) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.find(shareOf(who)).watches--
}

// within makes writing to a client fail after some time: a client that does not read would hold its answer in memory.
// The function that it returns must be called once all is written.
func within(w http.ResponseWriter, limit time.Duration) (done func()) {
	out := http.NewResponseController(w)
	if out.SetWriteDeadline(time.Now().Add(limit)) != nil {
		return func() { _ = out.Flush() } // it is no connection
	}
	return func() {
		_ = out.Flush()
		_ = out.SetWriteDeadline(time.Time{}) // the next answer of the connection has its own
	}
}
