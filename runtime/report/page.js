(() => {
  'use strict';
  const root = document.documentElement;
  root.classList.add('js');

  document.getElementById('theme').addEventListener('click', () => {
    const dark = matchMedia('(prefers-color-scheme: dark)').matches;
    const now = root.dataset.theme || (dark ? 'dark' : 'light');
    root.dataset.theme = now === 'dark' ? 'light' : 'dark';
  });

  const buttons = [...document.querySelectorAll('.picker button')];
  const panels = [...document.querySelectorAll('.sample')];
  for (const button of buttons) {
    button.addEventListener('click', () => {
      for (const other of buttons) other.setAttribute('aria-pressed', String(other === button));
      for (const panel of panels) panel.classList.toggle('on', panel.id === 'sample-' + button.dataset.sample);
    });
  }

  function follow(panel) {
    const slider = panel.querySelector('input[type=range]');
    if (!slider) return;
    const steps = Number(panel.dataset.steps);
    const ms = Number(panel.dataset.ms || 0);
    const output = panel.querySelector('output');
    const play = panel.querySelector('.play');
    const rows = [...panel.querySelectorAll('.odds li')];
    const table = JSON.parse(panel.querySelector('.probabilities').textContent);
    let timer = null;

    function show() {
      const step = Number(slider.value);
      const shares = table[step];
      const best = shares.indexOf(Math.max(...shares));
      panel.style.setProperty('--t', step);
      output.textContent = ms ? Math.round((step + 1) * ms) + ' ms' : 'step ' + (step + 1) + ' of ' + steps;
      for (const row of rows) {
        const entry = Number(row.dataset.class);
        row.querySelector('i').style.width = shares[entry] / 10 + '%';
        row.querySelector('.share').textContent = Math.round(shares[entry] / 10) + ' %';
        row.classList.toggle('won', entry === best);
      }
    }

    function stop() {
      clearInterval(timer);
      timer = null;
      play.textContent = '\u25B6';
      play.setAttribute('aria-label', 'Play');
    }

    function start() {
      if (Number(slider.value) >= steps - 1) slider.value = 0;
      play.textContent = '\u275A\u275A';
      play.setAttribute('aria-label', 'Pause');
      timer = setInterval(() => {
        slider.value = Number(slider.value) + 1;
        show();
        if (Number(slider.value) >= steps - 1) stop();
      }, Math.max(40, Math.min(200, 6000 / steps)));
    }

    slider.addEventListener('input', () => { stop(); show(); });
    play.addEventListener('click', () => { if (timer) stop(); else { start(); show(); } });
    for (const band of panel.querySelectorAll('.band')) {
      band.addEventListener('pointerdown', (event) => {
        const box = band.getBoundingClientRect();
        slider.value = Math.floor((event.clientX - box.left) / box.width * steps);
        stop();
        show();
      });
    }
    show();
  }
  panels.forEach(follow);
})();
