-- The victim: GET /nearest about random words of a file with one word a line, for `attacks`.
--
--     wrk -t1 -c4 -d5s -s tests/load/attacks.lua http://127.0.0.1:8080 -- words.txt
--
-- Ends with one line: "victim", answers, seconds, p50, p99 and max in ms, connections that broke, and how many
-- answers of each status other than 200.

local REQUESTS = 20000
local threads = {}

function setup(thread)
   table.insert(threads, thread)
   thread:set("seed", #threads)
end

local words, bytes
local requests, next_one = {}, 0
refused = {}

function init(args)
   local path = assert(args[1], "which file of words?")
   words = assert(io.open(path, "r"))
   bytes = words:seek("end")
   math.randomseed(seed)
end

local function encoded(word)
   return (word:gsub("[^%w%-._~]", function(c) return ("%%%02X"):format(c:byte()) end))
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

function response(status)
   if status ~= 200 then
      local name = tostring(status)
      refused[name] = (refused[name] or 0) + 1
   end
end

function done(summary, latency)
   local e, all = summary.errors, {}
   for _, thread in ipairs(threads) do
      for name, number in pairs(thread:get("refused")) do all[name] = (all[name] or 0) + number end
   end
   local parts = {}
   for name, number in pairs(all) do table.insert(parts, name .. ":" .. number) end
   io.write(("victim %d %.3f %.3f %.3f %.3f %d %s\n"):format(
      summary.requests, summary.duration / 1e6,
      latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, latency.max / 1e3,
      e.connect + e.read + e.write, table.concat(parts, ",")))
end
