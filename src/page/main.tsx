import './language.ts';
import { render } from 'preact';
import { config } from 'zod';
import 'uplot/dist/uPlot.min.css';
import './tokens.css';
import './layout.css';
import './parts.css';
import './tables.css';
import { App } from './app.tsx';
import { RelayWatch } from './relay-watch.ts';

// Its faster way makes functions out of text, which the page's policy forbids.
config({ jitless: true });

const watch = new RelayWatch();
const place = document.querySelector('#app')!;
place.replaceChildren();
render(<App watch={watch} />, place);
watch.start();
