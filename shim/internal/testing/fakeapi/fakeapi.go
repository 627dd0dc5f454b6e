// Package fakeapi helps tests that use client-go's fake API server.
package fakeapi

import (
	"testing"
	"time"

	clientgotesting "k8s.io/client-go/testing"
)

// patience is how long a test waits before it says that something hangs.
const patience = 60 * time.Second

// Client is a fake client, which notes what it was asked.
type Client interface {
	Actions() []clientgotesting.Action
}

// WaitForWatch waits until each of these resources is watched. The fake API server forgets what happens between a list
// and the watch that follows it: a test that changes an object earlier waits for an event in vain.
func WaitForWatch(t *testing.T, client Client, resources ...string) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		watched := map[string]bool{}
		for _, action := range client.Actions() {
			if action.GetVerb() == "watch" {
				watched[action.GetResource().Resource] = true
			}
		}
		missing := 0
		for _, resource := range resources {
			if !watched[resource] {
				missing++
			}
		}
		if missing == 0 {
			return
		}
	}
	t.Fatalf("%q are not all watched after %s", resources, patience)
}
