import { useEffect, useState } from 'preact/hooks';
import type { RelayWatch, View } from './relay-watch.ts';

export function useView(watch: RelayWatch): View {
  const [view, setView] = useState(watch.view);
  useEffect(() => watch.listen(() => setView(watch.view)), [watch]);
  return view;
}

/** This machine's time, once a second: for what is told while nothing new comes. */
export function useNow(): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

/** The width of an element, 0 until it is known. */
export function useWidth(): readonly [number, (element: Element | null) => void] {
  const [element, setElement] = useState<Element | null>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    if (element === null) return;
    const observer = new ResizeObserver(([{ contentRect }]) => setWidth(Math.floor(contentRect.width)));
    observer.observe(element);
    return () => observer.disconnect();
  }, [element]);
  return [width, setElement];
}

/** True while the media query holds. */
export function useMedia(query: string): boolean {
  const [holds, setHolds] = useState(matchMedia(query).matches);
  useEffect(() => {
    const list = matchMedia(query);
    const onChange = (): void => setHolds(list.matches);
    list.addEventListener('change', onChange);
    return () => list.removeEventListener('change', onChange);
  }, [query]);
  return holds;
}
