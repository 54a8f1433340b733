/*
 * Some browsers call their language by a name that they do not take themselves (`en-US@posix` where LANG is C): uPlot
 * then would not even load. To be imported before it.
 */
try {
  new Intl.NumberFormat(navigator.language);
} catch {
  Object.defineProperty(navigator, 'language', { value: 'en-US' });
}
