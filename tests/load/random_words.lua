-- Asks for the neighbours of random words of a file with one word a line (a model's words.txt):
--
--     wrk -t8 -c256 -d10s --latency -s tests/load/random_words.lua http://127.0.0.1:8080 -- words.txt
--
-- Ends with one line for scripts: "result", requests/s, p50 and p99 in ms, errors.

-- A request costs little the second time: making one must not cost more than answering it.
local REQUESTS = 50000
local threads = 0

function setup(thread)
   threads = threads + 1
   thread:set("seed", threads)
end

local function encoded(word)
   return (word:gsub("[^%w%-._~]", function(c) return ("%%%02X"):format(c:byte()) end))
end

local words, bytes
local requests, next_one = {}, 0

-- Nothing here may take long, such as reading the file: wrk starts its threads one after the other, and
-- counts what the first ones asked before the last one was ready as if it had been asked in its time.
function init(args)
   local path = assert(args[1], "which file of words? wrk ... URL -- words.txt")
   words = assert(io.open(path))
   bytes = words:seek("end")
   math.randomseed(seed)
end

-- The line after a random place in the file; the first one after the last.
local function random_word()
   words:seek("set", math.random(0, bytes - 1))
   words:read()
   local word = words:read()
   if word then return word end
   words:seek("set", 0)
   return words:read()
end

function request()
   next_one = next_one % REQUESTS + 1
   local request = requests[next_one]
   if not request then
      request = wrk.format("GET", "/nearest?word=" .. encoded(random_word()))
      requests[next_one] = request
   end
   return request
end

function done(summary, latency)
   local e = summary.errors
   io.write(("result %.0f %.3f %.3f %d\n"):format(
      summary.requests / summary.duration * 1e6,
      latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
      e.connect + e.read + e.write + e.status + e.timeout))
end
