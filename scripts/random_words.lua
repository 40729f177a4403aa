-- For wrk: asks /nearest for random words of the file that the environment variable WORDS names
-- (a model folder's words.txt). Every thread and run asks others.
local words = {}
local seed = os.time()

function setup(thread)
    seed = seed + 7919
    thread:set("seed", seed)
end

function init()
    math.randomseed(seed)
    local file = assert(io.open(os.getenv("WORDS"), "rb"), "set WORDS to a words.txt")
    local size = file:seek("end")
    -- Some thousands of words from anywhere in the file: reading all of a large one takes long.
    for _ = 1, 20000 do
        file:seek("set", math.random(0, size - 1))
        file:read("*l")
        local word = file:read("*l")
        if word and #word > 0 then
            words[#words + 1] = word:gsub("[^%w%-_.~]", function(c) return string.format("%%%02X", c:byte()) end)
        end
    end
    file:close()
end

function request()
    return wrk.format("GET", "/nearest?word=" .. words[math.random(#words)])
end
