package queue

import (
	"sync"
	"time"
)

// counted is when the queues that exist were counted last.
type counted struct {
	mutex sync.Mutex
	at    map[string]time.Time
}

// note records that a queue is counted.
func (c *counted) note(name string, at time.Time) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.at[name] = at
}

// last returns when a queue was counted last, the zero time if never.
func (c *counted) last(name string) time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.at[name]
}

// forget drops what is known of a queue that is gone.
func (c *counted) forget(name string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	delete(c.at, name)
}
