// Package web tests the web page as its readers see it: in a browser, with a real API server and the scheduler. It
// makes the pictures of docs/web.md:
//
//	go test ./test/web -pictures
package web
