# frozen_string_literal: true

# Verifies what the test says, a JSON line each, with examples/ruby/stockgate_token.rb.
require "json"
require_relative "../../examples/ruby/stockgate_token"

$stdout.sync = true
now = 0
verifier = nil
$stdin.each_line do |line|
  step = JSON.parse(line)
  now = step["now_ms"] / 1000.0
  if step["first"]
    begin
      verifier = StockgateToken.new(step["audience"], issuer: step["issuer"], jwks_url: step["url"], secret: step["secret"],
                                                      leeway: step["leeway_ms"] / 1000.0, now: -> { now })
    rescue ArgumentError
      puts '{"reason":"options"}'
      next
    end
  end
  known = step["known"] && ->(jti) { step["known"].include?(jti) }
  options = { subject: step["subject"], any_subject: step["any_subject"], lines: step["lines"], known: known }
  results = Array.new(step["times"]) { Thread.new { verifier.verify(step["token"], **options) } }.map(&:value)
  claims = results.first.last
  puts JSON.generate({ reason: results.map(&:first).uniq.join("|"), id: claims ? claims["jti"] : "" })
end
