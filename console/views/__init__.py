"""What answers a browser: fetch, guard, act, redirect; what a page shows is built in console.builders."""
