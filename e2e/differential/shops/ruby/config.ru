# Rack on Puma: params as Rails and Sinatra get them, and the method that a form overrides.
require 'json'
require 'rack'
require 'rack/method_override'

module Shop
  module_function

  def value(v)
    case v
    when nil then nil
    when String
      v = v.dup.force_encoding('UTF-8')
      v.valid_encoding? ? "s:#{v}" : 'x:not UTF-8'
    when Integer then "n:#{v}"
    when Float then "n:#{v.nan? || v.infinite? ? v : v}"
    else "x:#{v.class}"
    end
  end

  # What programs make of a SKU that their database has as a number.
  def casts(sku)
    return [] unless sku.is_a?(String) || sku.is_a?(Numeric)
    [-> { sku.to_i }, -> { sku.to_f }, -> { Integer(sku) }, -> { Float(sku) }, -> { sku.to_f.round }].filter_map do |cast|
      cast.call.to_s
    rescue StandardError
      nil
    end
  end

  def reading(how, from, got)
    return { how: how, from: from } unless got.is_a?(Hash)
    r = { how: how, from: from, sku: value(got['sku']), quantity: value(got['quantity']), user: value(got['user']), casts: casts(got['sku']) }
    items = got['order'].is_a?(Hash) ? got['order']['items'] : nil
    if items.is_a?(Array)
      r[:lines] = items.map { |l| l.is_a?(Hash) ? [value(l['sku']), value(l['count'])] : ['x:line', nil] }
    elsif items
      r[:lines] = [["x:#{items.class}", nil]]
    end
    r[:lines] ||= form_lines(got)
    r
  end

  # The lines in arrays of a form, as programs walk them.
  def form_lines(got)
    items, qty, skus = got['items'], got['qty'], got['skus']
    if items
      all = items.is_a?(Hash) ? items.values : items
      return [["x:#{items.class}", nil]] unless all.is_a?(Array)
      all.map { |l| l.is_a?(Hash) ? [value(l['sku']), value(l['count'])] : ["x:#{l.class}", nil] }
    elsif qty
      return [["x:#{qty.class}", nil]] unless qty.is_a?(Hash)
      qty.map { |sku, n| [value(sku), value(n)] }
    elsif skus
      return [["x:#{skus.class}", nil]] unless skus.is_a?(Array)
      counts = Array(got['counts'])
      skus.each_with_index.map { |sku, i| [value(sku), value(counts[i])] }
    end
  end

  def call(env)
    request = Rack::Request.new(env)
    json = nil
    if env['CONTENT_TYPE'].to_s =~ %r{json|text/plain}i
      json = JSON.parse(request.body.read)
      request.body.rewind
      json = {} unless json.is_a?(Hash)
    end
    steps = request.path.split('/')
    route = { 'sku' => Rack::Utils.unescape_path(steps[2].to_s), 'quantity' => Rack::Utils.unescape_path(steps[3].to_s) } if steps[1] == 'path'
    out = {
      method: request.request_method, path: request.path, token: env['HTTP_STOCKGATE_TOKEN'].to_s,
      readings: [
        reading('request.GET', 'query', request.GET), reading('request.POST', 'body', request.POST),
        reading('JSON.parse', 'body', json), reading('request.params', 'merged', request.params),
        reading('params.merge(json)', 'merged', request.params.merge(json || {})),
        reading('json.merge(params)', 'merged', (json || {}).merge(request.params)),
        reading('request.cookies', 'cookie', request.cookies),
        reading('env', 'header', { 'sku' => env['HTTP_X_SKU'], 'quantity' => env['HTTP_X_QUANTITY'], 'user' => env['HTTP_X_USER_ID'] }),
        reading('the path', 'path', route)
      ]
    }
    [200, { 'content-type' => 'application/json' }, [JSON.generate(out)]]
  rescue StandardError => e
    [400, { 'content-type' => 'application/json' }, [JSON.generate(error: e.class.name)]]
  end
end

use Rack::MethodOverride
run Shop
