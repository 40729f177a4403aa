-- Asks for the neighbours of random words of a file with one word a line (a model's words.txt):
--
--     wrk -t8 -c256 -d10s --latency -s tests/load/random_words.lua http://127.0.0.1:8080 -- words.txt
--
-- Ends with one line for scripts: "result", requests/s, p50 and p99 in ms, errors.

-- Each thread writes its requests beforehand: making one must not cost more than answering it.
local REQUESTS = 50000
local threads = 0

function setup(thread)
   threads = threads + 1
   thread:set("seed", threads)
end

local function encoded(word)
   return (word:gsub("[^%w%-._~]", function(c) return ("%%%02X"):format(c:byte()) end))
end

local requests, next_one = {}, 0

function init(args)
   local path = assert(args[1], "which file of words? wrk ... URL -- words.txt")
   local words = {}
   for word in io.lines(path) do words[#words + 1] = word end
   math.randomseed(seed)
   for i = 1, REQUESTS do
      local word = words[math.random(#words)]
      requests[i] = wrk.format("GET", "/nearest?word=" .. encoded(word))
   end
end

function request()
   next_one = next_one % REQUESTS + 1
   return requests[next_one]
end

function done(summary, latency)
   local e = summary.errors
   io.write(("result %.0f %.3f %.3f %d\n"):format(
      summary.requests / summary.duration * 1e6,
      latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
      e.connect + e.read + e.write + e.status + e.timeout))
end
