#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# make bench-plots: what tests/bench/scale measures against a private broker, as SVG, one picture for each figure, in the
# folder $PLOTS (bench-plots), beside the points themselves, scale.txt. plots.sh FILE: only draws those of FILE.
set -eu

out=${PLOTS:-bench-plots}
mkdir -p "$out"
out=$(cd "$out" && pwd)

# Both axes are logarithmic: flat is flat, and a walk over everything has the slope of the grey diagonals.
draw() {
    awk -v figure="$1" -v title="$2" -v xlabel="$3" -v ylabel="$4" '
        function log10(v) { return log(v) / log(10) }
        function x_of(v) { return 70 + (log10(v) - x0) / (x1 - x0) * 480 }
        function y_of(v) { return 350 - (log10(v) - y0) / (y1 - y0) * 300 }
        function floor10(v,  f) { f = int(v); return f > v ? f - 1 : f }
        function text(x, y, anchor, s) {
            printf "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor, s
        }
        $1 == figure && $4 > 0 {
            if (!($2 in points)) names[++n] = $2
            xs[$2, ++points[$2]] = $3
            ys[$2, points[$2]] = $4
            if (!seen++) { x_low = x_high = $3; y_low = y_high = $4 }
            if ($3 < x_low) x_low = $3
            if ($3 > x_high) x_high = $3
            if ($4 < y_low) y_low = $4
            if ($4 > y_high) y_high = $4
        }
        END {
            if (!seen) exit 1
            split("#1f77b4 #d62728 #2ca02c #9467bd #ff7f0e #17becf #8c564b #7f7f7f", colours, " ")
            x0 = floor10(log10(x_low)); x1 = log10(x_high)
            if (x1 - x0 < 1) x1 = x0 + 1
            y0 = floor10(log10(y_low)); y1 = floor10(log10(y_high)) + 1
            print "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"410\" font-family=\"sans-serif\"" \
                  " font-size=\"12\">"
            print "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>"
            print "<clipPath id=\"area\"><rect x=\"70\" y=\"50\" width=\"480\" height=\"300\"/></clipPath>"
            text(310, 30, "middle", title); text(310, 395, "middle", xlabel)
            printf "<text transform=\"translate(20 200) rotate(-90)\" text-anchor=\"middle\">%s</text>\n", ylabel
            for (e = x0; e <= x1 + 0.001; e++) {
                x = x_of(10 ^ e)
                printf "<path d=\"M%.1f 50V350\" stroke=\"#ddd\"/>\n", x
                text(x, 368, "middle", sprintf("%d", 10 ^ e))
            }
            for (e = y0; e <= y1; e++) {
                y = y_of(10 ^ e)
                printf "<path d=\"M70 %.1fH550\" stroke=\"#ddd\"/>\n", y
                text(64, y + 4, "end", sprintf("%g", 10 ^ e))
            }
            for (e = y0 - 6; e <= y1; e++)
                printf "<path clip-path=\"url(#area)\" d=\"M%.1f %.1fL%.1f %.1f\" stroke=\"#eee\"/>\n",
                       x_of(10 ^ x0), y_of(10 ^ e), x_of(10 ^ x1), y_of(10 ^ (e + x1 - x0))
            for (i = 1; i <= n; i++) {
                name = names[i]
                printf "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"%s\" points=\"", colours[(i - 1) % 8 + 1]
                for (k = 1; k <= points[name]; k++)
                    printf "%.1f,%.1f ", x_of(xs[name, k]), y_of(ys[name, k])
                print "\"/>"
                printf "<rect x=\"566\" y=\"%d\" width=\"12\" height=\"4\" fill=\"%s\"/>\n", 50 + 20 * i,
                       colours[(i - 1) % 8 + 1]
                text(584, 56 + 20 * i, "start",
                     sprintf("%s (x %.2f)", name, ys[name, points[name]] / ys[name, 1]))
            }
            print "</svg>"
        }' "$points" >"$out/$1.svg"
    echo "$out/$1.svg"
}

if [ $# = 1 ]; then
    points=$1
else
    # shellcheck source=tests/support/broker.sh
    . "${srcdir:?}/tests/support/broker.sh"
    begin_broker
    points=$out/scale.txt
    "${builddir:?}/tests/bench/scale" | tee "$points"
fi
draw clients 'What a call costs, by clients that are connected' clients 'us (median)'
draw buffers 'What a call costs, by buffers that live' 'live buffers' 'us (median)'
draw objects 'Small objects of a UMF pool over memoryd' 'live objects' 'us (median)'
draw objects-take 'What the objects of a UMF pool take' 'live objects' number
