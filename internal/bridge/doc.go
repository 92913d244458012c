// Package bridge brings clients and servers of both eras together. A server's
// era is found out once (see Eras); a client of the same era gets through, one of
// the other by package park or package dialog.
package bridge
