"""Heads find the hidden bits: choose n, k and a recipe, watch attention move, and look at the risk as a landscape.

marimo edit docs/notebooks/heads_find_the_bits.py    # in a browser, with sliders
python docs/notebooks/heads_find_the_bits.py         # as a script, with the sliders where they start
"""

import marimo

app = marimo.App(width="medium", app_title="Heads find the hidden bits")


@app.cell
def introduction(mo):
    mo.md(
        """
        # Heads find the hidden bits

        **With a bounded readout they do; with the paper's published code they often do not.** Below you watch it,
        choose n, k and the recipe, and see the risk as a landscape of the heads' angles.

        The label is the parity of *k* of *n* bits. Each head distributes its attention over the positions. The sum of
        the attention of all heads gives every bit a weight *c*, and the prediction is a function of S = Σ *c x*.
        Learning means moving the weights onto the hidden bits. You can choose between three recipes: `bounded` (this
        project's default), `repaired` (the paper's circle with a bounded readout) and `as-coded` (the paper's
        published code).
        """
    )


@app.cell
def imports():
    import math

    import marimo as mo
    import torch

    import parityscope as ps
    from parityscope.core.drawing import HEAT, colour, new_figure, themed

    return HEAT, colour, math, mo, new_figure, ps, themed, torch


@app.cell
def choices(mo):
    bits = mo.ui.slider(8, 16, value=12, label="bits n", show_value=True)
    hidden_bits = mo.ui.slider(2, 4, value=3, label="hidden bits k", show_value=True)
    recipe = mo.ui.dropdown(["bounded", "repaired", "as-coded"], value="repaired", label="recipe")
    seed = mo.ui.slider(0, 20, value=1, label="seed", show_value=True)
    mo.hstack([bits, hidden_bits, recipe, seed], justify="start")
    return bits, hidden_bits, recipe, seed


@app.cell
def training(bits, hidden_bits, ps, recipe, seed):
    problem = ps.draw_problems(bits.value, hidden_bits.value, [seed.value])[0]
    moments = []

    def remember(step, model):
        moments.append((step, model.score_weights()[0].detach().clone(), model.directions[0].detach().clone()))

    most = {"as-coded": {"steps": 600}}.get(recipe.value, {})
    run = ps.learn(problem, recipe.value, [seed.value], on_record=remember, record_every=5, **most)
    print(
        f"{recipe.value}: n = {problem.n}, hidden {problem.support}, recovered {tuple(run.found[0].tolist())}, "
        f"risk {run.risk[0]:.4f}, accuracy {run.accuracy[0]:.4f}, {int(run.steps[0])} steps"
    )
    return moments, problem, run


@app.cell
def verdict(mo, problem, run):
    found = tuple(run.found[0].tolist())
    right = f"accuracy **{run.accuracy[0]:.4f}** over all 2^{problem.n} inputs"
    mo.callout(
        mo.md(f"hidden **{problem.support}**, recovered **{found}**, {right}"),
        kind="success" if bool(run.learned[0]) else "warn",
    )


@app.cell
def when(mo, moments):
    moment = mo.ui.slider(0, len(moments) - 1, value=len(moments) // 3, label="moment of the training", show_value=True)
    moment  # noqa: B018
    return (moment,)


@app.cell
def picture(colour, moment, moments, new_figure, problem, themed, torch):
    def draw():
        figure, (lines, now) = new_figure(10, 3.4, 1, 2)
        steps, c = [step for step, *_ in moments], torch.stack([weights for _, weights, _ in moments])
        mask = problem.mask()
        lines.plot(steps, c[:, ~mask], color="#999999", linewidth=0.8)
        lines.plot(steps, c[:, mask], color=colour(1), linewidth=2.2)
        lines.axvline(steps[moment.value], color=colour(0), linestyle=":")
        lines.set(xlabel="step", ylabel="weight c of a bit", title="hidden bits orange, the others grey")
        colours = [colour(1) if hidden else "#999999" for hidden in mask]
        now.bar(range(problem.n), c[moment.value].tolist(), color=colours)
        now.axhline(1, color="#999999", linewidth=0.8, linestyle="--")
        now.set(xlabel="position", ylabel="weight c", title=f"step {steps[moment.value]}")
        return figure

    themed(draw)


@app.cell
def about_the_landscape(mo):
    mo.md(
        """
        ## The risk as a landscape

        On the circle a head is a vector with an angle. The picture shows the exact risk as a function of the angles
        of the first two heads, with everything else fixed at the chosen moment. Dotted lines are the angles of the
        hidden bits, and the white path is the path of the training. (With `bounded`, heads are not on a circle, so
        the landscape is drawn for `repaired` instead.)
        """
    )


@app.cell
def landscape(HEAT, colour, math, moment, moments, new_figure, problem, ps, recipe, run, seed, themed, torch):
    if recipe.value == "bounded":
        path = []
        on_circle = ps.learn(
            problem,
            "repaired",
            [seed.value],
            on_record=lambda step, model: path.append(model.directions[0].detach().clone()),
            record_every=5,
        )
    else:
        path, on_circle = [directions for *_, directions in moments], run
    here = path[min(moment.value, len(path) - 1)]
    side = 40
    angles = 2 * math.pi * (torch.arange(side, dtype=torch.float64) + 0.5) / side
    arrows = torch.stack([angles.cos(), angles.sin()], -1)
    directions = here.expand(side * side, *here.shape).clone()
    directions[:, 0] = here[0].norm() * arrows.repeat(side, 1)
    directions[:, 1] = here[1].norm() * arrows.repeat_interleave(side, 0)
    model = on_circle.model
    turned = ps.ParityTransformer(
        problem.n,
        problem.k,
        temperature=model.temperature,
        positions=model.positions,
        readout=model.readout,
        directions=directions,
    )
    with torch.no_grad():
        risk = ps.population_risk(turned, [problem] * len(directions), loss="hinge").value.reshape(side, side)

    def degrees(vectors):
        return torch.atan2(vectors[..., 1], vectors[..., 0]).remainder(2 * math.pi).rad2deg()

    def draw_landscape():
        figure, axes = new_figure(6, 5)
        image = axes.imshow(risk.numpy(), origin="lower", extent=(0, 360, 0, 360), cmap=HEAT, aspect="equal")
        for angle in degrees(model.positions[list(problem.support)]).tolist():
            axes.axvline(angle, color="#999999", linestyle=":", linewidth=0.8)
            axes.axhline(angle, color="#999999", linestyle=":", linewidth=0.8)
        way = degrees(torch.stack(path)[:, :2])
        axes.plot(way[:, 0], way[:, 1], ".-", color="white", markersize=4, linewidth=0.4)
        axes.plot(*degrees(here[:2]), "o", color=colour(1), markersize=9)
        axes.set(xlabel="angle of head 0", ylabel="angle of head 1", title="exact hinge risk")
        figure.colorbar(image)
        return figure

    print(
        f"landscape: risk between {risk.min():.3f} and {risk.max():.3f}; the training ended at {on_circle.risk[0]:.3f}"
    )
    themed(draw_landscape)
    return (risk,)


@app.cell
def checks(moments, problem, recipe, risk, run):
    # Weights add up to k at every moment, and no hinge risk of a bounded readout leaves [0, 2].
    assert all(abs(float(weights.sum()) - problem.k) < 1e-9 for _, weights, _ in moments)
    if recipe.value != "as-coded":
        assert 0 <= float(risk.min()) <= float(risk.max()) <= 2
        assert bool(run.learned[0]), "the bounded readout lost a seed: please report it"
    print("checked")


@app.cell
def next_steps(mo):
    mo.md(
        """
        **Try** `as-coded` with k = 4 on several seeds, and `repaired` on the same ones. Then move the slider for the
        moment of the training and watch the landscape change as the norms of the heads grow. At first it is smooth.
        At the end it is flat except for narrow valleys, which is why a sharp initialisation fails.
        """
    )


if __name__ == "__main__":
    app.run()
