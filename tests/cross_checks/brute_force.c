/* Risk and accuracy of y^ = zigzag(sum of c_j x_j) over all 2^n inputs, by visiting each of them. Written from the
   formulas of the problem alone, to check the engines of this project against; it shares nothing with them.

   Standard input: n k loss smoothing bias noise, then n weights c, then the k hidden positions.
   loss: 0 hinge, 1 squared hinge, 2 logistic. Numbers may be hexadecimal floats, so that none is rounded.
   Standard output: risk, accuracy on labels without noise (a prediction of 0 counts as -1), both as hexadecimal floats. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 40 };

static double zigzag(double score, int k, double smoothing)
{
    double value = 1.0;
    for (int i = 1; i <= k; i++) {
        double z = score + 0.5 - i;
        double relu = smoothing > 0 ? (z + sqrt(z * z + smoothing)) / 2 : (z > 0 ? z : 0);
        value += (i % 2 ? -1.0 : 1.0) * (8.0 * i - 4.0) * relu;
    }
    return value;
}

static long double loss_of(double margin, int loss)
{
    if (loss == 2)
        return margin > 0 ? log1pl(expl(-(long double)margin)) : -(long double)margin + log1pl(expl(margin));
    long double below = margin < 1 ? 1.0L - margin : 0.0L;
    return loss == 1 ? below * below : below;
}

int main(void)
{
    int n, k, loss, hidden[MOST];
    double smoothing, bias, noise, weight[MOST];
    if (scanf("%d %d %d %lf %lf %lf", &n, &k, &loss, &smoothing, &bias, &noise) != 6 || n > MOST || k > n)
        return EXIT_FAILURE;
    for (int j = 0; j < n; j++)
        if (scanf("%lf", &weight[j]) != 1)
            return EXIT_FAILURE;
    for (int i = 0; i < k; i++)
        if (scanf("%d", &hidden[i]) != 1)
            return EXIT_FAILURE;
    long double risk = 0, right = 0;
    for (unsigned long long x = 0; x < 1ULL << n; x++) {
        double score = 0;
        long double chance = 1;
        int parity = 0;
        for (int j = 0; j < n; j++) {
            int bit = x >> j & 1;
            score += bit ? weight[j] : 0;
            chance *= bit ? bias : 1 - bias;
        }
        for (int i = 0; i < k; i++)
            parity ^= x >> hidden[i] & 1;
        double label = parity ? -1 : 1, prediction = zigzag(score, k, smoothing);
        risk += chance * ((1 - noise) * loss_of(label * prediction, loss) + noise * loss_of(-label * prediction, loss));
        right += chance * ((prediction > 0 ? 1 : -1) == label);
    }
    printf("%a %a\n", (double)risk, (double)right);
    return EXIT_SUCCESS;
}
